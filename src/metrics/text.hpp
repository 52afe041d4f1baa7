#pragma once

#include "metrics/shard.hpp"

#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace idem::metrics {

struct HistogramSum {
  std::array<std::uint64_t, Histogram::bucket_count> buckets{};
  double seconds = 0;
};

/// The value that `share` of the observations do not exceed, interpolated within its bucket; at
/// most the end of the last bucket. None: there are no observations.
std::optional<double> quantile(const HistogramSum& histogram, double share) noexcept;

/// Writes the Prometheus text format 0.0.4.
class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help);

  void sample(std::string_view name, std::string_view label, std::string_view value,
              std::uint64_t number);
  using Label = std::pair<std::string_view, std::string_view>;
  void sample(std::string_view name, std::initializer_list<Label> labels, std::uint64_t number);
  /// One sample with one label, in seconds.
  void seconds(std::string_view name, Label label, double number);
  void histogram(std::string_view name, const HistogramSum& histogram);

  /// A family with one sample without labels.
  template <class Number>
  void single(std::string_view name, std::string_view type, std::string_view help, Number number) {
    family(name, type, help);
    out_ += name;
    end_sample(number);
  }

  std::string take() { return std::move(out_); }

 private:
  void labels(std::string_view name, std::initializer_list<Label> labels);
  void end_sample(std::uint64_t number);
  void end_sample(double number);

  std::string out_;
};

}  // namespace idem::metrics
