#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message.hpp"

namespace provider {

/// Counts the messages that services send. The first arrival of each is its effect.
class Inbox {
 public:
  /// Answers a message: 200, also to a repeat; 400 without webhook-id; 401 if a secret is set and
  /// the signature is wrong; 409 if the id came before with another body.
  Reply receive(const Request& request, std::time_t now);

  std::string json() const;
  std::string json_of_id(const std::string& id) const;
  /// The ids with this ce-subject, in order of first arrival.
  std::string json_of_subject(const std::string& subject) const;
  void clear();

  std::optional<std::string> secret;  ///< Of the required signature; none: not required.

 private:
  struct Message {
    std::uint64_t arrivals = 0;
    std::uint64_t conflicts = 0;
    std::string type{};
    std::string subject{};
    std::size_t body_bytes = 0;
    std::uint64_t body_digest = 0;
    std::vector<std::pair<std::string, std::string>> fields{};  ///< ce-*, of the first arrival.
  };

  static Message read(const Request& request);

  std::map<std::string, Message> messages_;
  std::map<std::string, std::vector<std::string>> subjects_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t conflicts_ = 0;
};

}  // namespace provider
