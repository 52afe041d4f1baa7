#pragma once

#include "admin/admin.hpp"
#include "metrics/samples.hpp"

#include <functional>

namespace idem::admin {

/// `/v1/samples`: what this process did in the last hour and the last day, for the charts of the
/// console. It samples by itself while the loop runs. Loop's thread only.
class SamplesApi {
 public:
  using CountMessages = std::function<Task<std::optional<std::vector<MessageCount>>>()>;

  /// `parts` outlives it.
  SamplesApi(AdminParts& parts, CountMessages count_messages)
      : parts_(parts), count_messages_(std::move(count_messages)) {}

  /// Call it once.
  void start() { parts_.loop.spawn_beside(keep_sampling()); }

  /// What the store counted just now for another answer.
  void counted(const Census& census, const std::optional<std::vector<MessageCount>>& messages);

  /// `query`: behind the question mark.
  WireAnswer answer_to(std::string_view query) const;

 private:
  Task<void> keep_sampling();
  Task<void> count();
  metrics::Levels levels() const;

  AdminParts& parts_;
  CountMessages count_messages_;
  metrics::Levels counted_{};  ///< As the store was when it was last asked.
  metrics::Samples samples_{std::chrono::system_clock::now()};
};

}  // namespace idem::admin
