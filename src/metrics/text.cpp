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

}  // namespace

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
  out_ += fmt::format("# HELP {} ", name);
  append_escaped(out_, help, false);
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
    out_ += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name,
                        has_end ? fmt::format("{}", bucket_ends[i]) : "+Inf", so_far);
  }
  out_ += fmt::format("{}_sum {}\n{}_count {}\n", name, histogram.seconds, name, so_far);
}

void Text::end_sample(std::uint64_t number) { out_ += fmt::format(" {}\n", number); }
void Text::end_sample(double number) { out_ += fmt::format(" {}\n", number); }

}  // namespace idem::metrics
