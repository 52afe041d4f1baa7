#include "check/report/call_lines.hpp"
#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace idem::check {
namespace {

constexpr std::size_t width_min = 40;
// Longer lines of prose are hard to read.
constexpr std::size_t prose_width_max = 96;

enum class Colour : std::uint8_t { plain, good, warning, bad, soft, strong };

std::string_view sequence_of(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "";
    case Colour::good:
      return "\x1b[32m";
    case Colour::warning:
      return "\x1b[33m";
    case Colour::bad:
      return "\x1b[31m";
    case Colour::soft:
      return "\x1b[2m";
    case Colour::strong:
      return "\x1b[1m";
  }
  return "";
}

Colour colour_of(Severity severity) {
  switch (severity) {
    case Severity::money:
    case Severity::correctness:
      return Colour::bad;
    case Severity::interoperability:
      return Colour::warning;
    case Severity::courtesy:
      break;
  }
  return Colour::plain;
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

/// Characters; those that are two columns wide count as one, and a terminal wraps them itself.
std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

/// `text` in at most `columns`, with "…" at its end where it is longer.
std::string cut(const std::string& text, std::size_t columns) {
  if (columns_of(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && seen++ == columns - 1) break;
  }
  return text.substr(0, end) + "…";
}

class TerminalReport {
 public:
  TerminalReport(const Report& report, bool colours, int width)
      : report_(report),
        colours_(colours),
        width_(std::max(width_min, static_cast<std::size_t>(std::max(width, 0)))) {}

  std::string text() {
    for (const CaseResult* finding : findings_of(report_)) add_finding(*finding);
    for (const CaseResult* one : unconfirmed_of(report_)) add_unconfirmed(*one);
    add_counts();
    add_skips();
    add_verdict();
    add_prose("", run_sentence(report_));
    return std::move(out_);
  }

 private:
  std::string in(Colour colour, const std::string& text) const {
    if (!colours_ || colour == Colour::plain) return text;
    return std::string(sequence_of(colour)) + text + "\x1b[0m";
  }

  /// A paragraph after `label` in its colour, whose further lines begin below its first word.
  void add_prose(const std::string& label, std::string_view text, Colour colour = Colour::plain) {
    const std::size_t width = std::min(width_, prose_width_max);
    const std::size_t indent = columns_of(label);
    const std::string prose = printable(text);
    std::size_t column = indent;
    out_ += in(colour, label);
    for (std::size_t at = 0; at < prose.size();) {
      const std::size_t end = std::min(prose.find(' ', at), prose.size());
      const std::string word = prose.substr(at, end - at);
      const bool is_first = column == indent;
      if (!is_first && column + 1 + columns_of(word) > width) {
        out_ += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (!is_first) {
        out_ += ' ';
        ++column;
      }
      out_ += word;
      column += columns_of(word);
      at = end + 1;
    }
    out_ += '\n';
  }

  void add_finding(const CaseResult& finding) {
    const CaseText& text = text_of(finding);
    const auto severity = std::string(name_of(text.severity));
    out_ += in(colour_of(text.severity), "✗ " + severity) + " " +
            in(Colour::strong, "Violated: " + printable(text.title)) + " " +
            in(Colour::soft, "(" + printable(text.id) + ")") + "\n";
    add_prose("  Observed  ", finding.detail + " " + attempts_sentence(finding));
    out_ += '\n';
    add_calls(finding);
    if (!finding.calls.empty()) out_ += '\n';
    add_prose("  Impact    ", text.money);
    add_prose("  Fix       ", text.mend);
    add_prose("  Source    ", text.source);
    out_ += '\n';
  }

  /// What nobody should overlook although it did not come again.
  void add_unconfirmed(const CaseResult& result) {
    const CaseText& text = text_of(result);
    const auto severity = std::string(name_of(text.severity));
    out_ += in(Colour::warning, "? " + severity) + " " +
            in(Colour::strong, "Not confirmed: " + printable(text.title)) + " " +
            in(Colour::soft, "(" + printable(text.id) + ")") + "\n";
    add_prose("  Observed  ", result.detail);
    out_ += '\n';
    add_calls(result);
    if (!result.calls.empty()) out_ += '\n';
  }

  /// The first two calls and the last one: the beginning, and the end.
  void add_calls(const CaseResult& finding) {
    const auto& calls = finding.calls;
    const std::string* request_before = nullptr;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i == 2 && calls.size() > 3) {
        out_ += in(Colour::soft, "    and " + counted(calls.size() - 3, "more request") + "\n");
      }
      if (i >= 2 && i + 1 < calls.size()) continue;
      const bool is_same = request_before != nullptr && *request_before == calls[i].request;
      add_call(finding, calls[i], is_same);
      request_before = &calls[i].request;
    }
  }

  void add_call(const CaseResult& finding, const Call& call, bool has_same_request) {
    const std::string times =
        fmt::format(" (at {}, took {})", duration_text(call.began), duration_text(call.took));
    out_ += cut("    " + printable(call.what) + times, width_) + "\n";
    if (has_same_request) {
      add_line('>', "the same request");
    } else {
      for (const auto& line : lines_that_matter(call.request, report_, finding)) {
        add_line('>', line);
      }
    }
    for (const auto& line : lines_that_matter(call.answer, report_, finding)) add_line('<', line);
    if (!call.failure.empty()) {
      add_line('<',
               (call.answer.empty() ? "no answer: " : "not whole: ") + printable(call.failure));
    }
  }

  void add_line(char direction, const std::string& line) {
    out_ += in(Colour::soft, cut(fmt::format("      {} {}", direction, line), width_)) + "\n";
  }

  void add_counts() {
    for (const Severity severity : all_severities) {
      const Counts counts = counts_of(report_, severity);
      if (counts.all() == 0) continue;
      const std::string fail = fmt::format("{:3} fail", counts.fail);
      out_ += fmt::format("{:16} {:3} pass {} {:3} skip\n", name_of(severity), counts.pass,
                          counts.fail == 0 ? fail : in(colour_of(severity), fail), counts.skip);
    }
  }

  void add_skips() {
    const auto groups = skip_groups_of(report_);
    if (groups.empty()) return;
    out_ += "\nSkipped:\n";
    for (const auto& group : groups) {
      add_prose("  - ", fmt::format("{}: {}", group.reason, fmt::join(group.ids, ", ")));
    }
  }

  void add_verdict() {
    if (!out_.empty()) out_ += '\n';
    const Conclusion conclusion = conclusion_of(report_);
    const std::string word = std::string(word_of(conclusion)) + ": ";
    const std::string sentence = verdict_sentence(report_);
    switch (conclusion) {
      case Conclusion::pass:
        return add_prose("✓ " + word, sentence, Colour::good);
      case Conclusion::fail:
        return add_prose("✗ " + word, sentence, Colour::bad);
      case Conclusion::incomplete:
      case Conclusion::untested:
        return add_prose("– " + word, sentence, Colour::warning);
    }
  }

  const Report& report_;
  const bool colours_;
  const std::size_t width_;
  std::string out_;
};

}  // namespace

std::string terminal_report(const Report& report, bool colours, int width) {
  return TerminalReport(report, colours, width).text();
}

}  // namespace idem::check
