#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "faults.hpp"
#include "world.hpp"

namespace provider {

/// `http://HOST[:PORT][/PATH]`, still without its secret.
std::optional<Receiver> parse_receiver(std::string_view url);

/// An event on its way to the receiver.
struct Event {
  std::string id;    ///< The same at every attempt and repetition.
  std::string body;  ///< {"type":...,"timestamp":...,"data":{...}}
  std::chrono::milliseconds late{0};
  int deliveries = 1;  ///< How often to deliver it.
  int attempts = 0;    ///< Of the delivery that is under way.
};

/// The event of a new effect; none without a receiver, or if a fault loses it.
std::optional<Event> event_of(const Effect& effect, const Faults& faults, World& world);

/// One attempt, for `early-webhook`: the rest is deliver()'s.
Task deliver_early(Event& event, World& world);
/// Makes attempts until the receiver answers 2xx or the provider gives up, for each delivery that
/// is left. Never throws.
Task deliver(Event event, World& world);

}  // namespace provider
