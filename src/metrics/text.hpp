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
  Histogram::Exemplars exemplars{};
};

/// The value that `share` of the observations do not exceed, interpolated within its bucket; at
/// most the end of the last bucket. None: there are no observations.
std::optional<double> quantile(const HistogramSum& histogram, double share) noexcept;

/// What a scraper asked for.
enum class Format : std::uint8_t {
  prometheus,   ///< The Prometheus text format 0.0.4, which has no exemplars.
  open_metrics  ///< OpenMetrics 1.0.
};
/// The value of Content-Type.
std::string_view content_type_of(Format format) noexcept;
/// By the value of Accept; Prometheus' format for any that does not name OpenMetrics.
Format preferred_format(std::string_view accept) noexcept;

/// Writes an exposition.
class Text {
 public:
  explicit Text(Format format) noexcept : format_(format) {}

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

  /// The whole text. Nothing may be written behind it.
  std::string take();

 private:
  void labels(std::string_view name, std::initializer_list<Label> labels);
  void end_sample(std::uint64_t number);
  void end_sample(double number);
  void end_bucket(std::uint64_t number, const std::optional<Exemplar>& exemplar);

  Format format_;
  std::string out_;
};

}  // namespace idem::metrics
