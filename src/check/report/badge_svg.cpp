#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"

#include <fmt/format.h>

namespace idem::check {
namespace {

constexpr std::size_t profile_bytes_max = 24;

// White text on each has a contrast above 4.5.
std::string_view ground_of(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::pass:
      return "#1e7b34";
    case Conclusion::fail:
      return "#b3261e";
    case Conclusion::incomplete:
    case Conclusion::untested:
      return "#5f6670";
  }
  return "";
}

std::string message_of(const Report& report) {
  const std::string profile = printable(beginning_of(report.profile, profile_bytes_max));
  const Counts counts = counts_of(report);
  switch (conclusion_of(report)) {
    case Conclusion::pass:
      return fmt::format("{}: {}/{} pass", profile, counts.pass, cases_known(report));
    case Conclusion::fail:
      return counted(counts.fail, "finding");
    case Conclusion::incomplete:
    case Conclusion::untested:
      break;
  }
  return std::string(word_of(conclusion_of(report)));
}

/// Of a text in tenths of a pixel, in Verdana of 11 pixels. `textLength` fits other fonts to it.
unsigned width_of(std::string_view text) {
  unsigned width = 0;
  for (const char c : text) {
    if (std::string_view("fijlrt ,.:;|'()[]").contains(c)) {
      width += 40;
    } else if (std::string_view("mwMW").contains(c)) {
      width += 102;
    } else {
      width += 66;
    }
  }
  return width;
}

/// A text in the middle of what lies between `from` and `from` + `width`, in pixels.
std::string text_element(std::string_view text, unsigned from, unsigned width) {
  return fmt::format("<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>\n", from + width / 2,
                     width_of(text) / 10, markup(text));
}

}  // namespace

std::string badge_svg(const Report& report) {
  constexpr std::string_view label = "idempotency";
  constexpr unsigned margins = 12;
  const std::string message = message_of(report);
  const unsigned left = width_of(label) / 10 + margins;
  const unsigned right = width_of(message) / 10 + margins;
  const std::string title = markup(fmt::format("{}: {}", label, message));
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"20\""
             " viewBox=\"0 0 {0} 20\" role=\"img\" aria-label=\"{1}\">\n<title>{1}</title>\n"
             "<rect width=\"{0}\" height=\"20\" rx=\"3\" fill=\"{2}\"/>\n"
             "<path d=\"M3 0H{3}V20H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0Z\" fill=\"#43484f\"/>\n"
             "<g fill=\"#fff\" font-family=\"Verdana,'DejaVu Sans',sans-serif\" font-size=\"11\""
             " text-anchor=\"middle\">\n",
             left + right, title, ground_of(conclusion_of(report)), left) +
         text_element(label, 0, left) + text_element(message, left, right) + "</g>\n</svg>\n";
}

}  // namespace idem::check
