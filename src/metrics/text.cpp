#include "metrics/text.hpp"

#include <fmt/format.h>

#include <numeric>

namespace idem::metrics {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quotes_too) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes_too) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

/// OpenMetrics, "Numbers": the end of a bucket is written as a float.
std::string end_text(double end, Format format) {
  std::string text = fmt::format("{}", end);
  const bool is_whole = text.find_first_of(".e") == std::string::npos;
  return format == Format::open_metrics && is_whole ? text + ".0" : text;
}

}  // namespace

std::string_view content_type_of(Format format) noexcept {
  return format == Format::open_metrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Format preferred_format(std::string_view accept) noexcept {
  const bool is_named = accept.find("application/openmetrics-text") != std::string_view::npos;
  return is_named ? Format::open_metrics : Format::prometheus;
}

std::optional<double> quantile(const HistogramSum& histogram, double share) noexcept {
  const auto& buckets = histogram.buckets;
  const auto total = std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
  if (total == 0) return std::nullopt;
  const double rank = share * static_cast<double>(total);
  double below = 0;
  double begin = 0;
  for (std::size_t i = 0; i < bucket_ends.size(); ++i) {
    const auto here = static_cast<double>(buckets[i]);
    if (here > 0 && below + here >= rank) {
      return begin + (bucket_ends[i] - begin) * (rank - below) / here;
    }
    below += here;
    begin = bucket_ends[i];
  }
  return bucket_ends.back();
}

void Text::family(std::string_view name, std::string_view type, std::string_view help) {
  constexpr std::string_view total = "_total";
  // There the samples of a family `name` of counters are called `name_total`.
  if (format_ == Format::open_metrics && type == "counter" && name.ends_with(total)) {
    name.remove_suffix(total.size());
  }
  out_ += fmt::format("# HELP {} ", name);
  append_escaped(out_, help, format_ == Format::open_metrics);
  out_ += fmt::format("\n# TYPE {} {}\n", name, type);
}

void Text::sample(std::string_view name, std::string_view label, std::string_view value,
                  std::uint64_t number) {
  sample(name, {{label, value}}, number);
}

void Text::sample(std::string_view name, std::initializer_list<Label> all, std::uint64_t number) {
  labels(name, all);
  end_sample(number);
}

void Text::seconds(std::string_view name, Label label, double number) {
  labels(name, {label});
  end_sample(number);
}

void Text::labels(std::string_view name, std::initializer_list<Label> all) {
  out_ += name;
  char before = '{';
  for (const auto& [label, value] : all) {
    out_ += before;
    out_ += label;
    out_ += "=\"";
    append_escaped(out_, value, true);
    out_ += '"';
    before = ',';
  }
  out_ += '}';
}

void Text::histogram(std::string_view name, const HistogramSum& histogram) {
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    so_far += histogram.buckets[i];
    const bool has_end = i < bucket_ends.size();
    out_ += fmt::format("{}_bucket{{le=\"{}\"}}", name,
                        has_end ? end_text(bucket_ends[i], format_) : "+Inf");
    end_bucket(so_far, histogram.exemplars[i]);
  }
  out_ += fmt::format("{}_sum {}\n{}_count {}\n", name, histogram.seconds, name, so_far);
}

void Text::end_bucket(std::uint64_t number, const std::optional<Exemplar>& exemplar) {
  out_ += fmt::format(" {}", number);
  if (exemplar && format_ == Format::open_metrics) {
    const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
    out_ += fmt::format(" # {{trace_id=\"{}\",span_id=\"{}\"}} {} {:.3f}",
                        to_hex(exemplar->span.trace.bytes), to_hex(exemplar->span.span.bytes),
                        seconds(exemplar->took), seconds(exemplar->at.time_since_epoch()));
  }
  out_ += '\n';
}

std::string Text::take() {
  if (format_ == Format::open_metrics) out_ += "# EOF\n";
  return std::move(out_);
}

void Text::end_sample(std::uint64_t number) { out_ += fmt::format(" {}\n", number); }
void Text::end_sample(double number) { out_ += fmt::format(" {}\n", number); }

}  // namespace idem::metrics
