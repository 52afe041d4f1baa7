#pragma once

#include <string>

/// @file
/// The messages of the outbox.
namespace idem::inline v0_1 {

/// A message that the work sends: a receipt, an event, a webhook (protocol.md §18).
struct Message {
  /// The destination's name in the relays' configuration; 1 to 255 bytes.
  std::string destination{};
  /// What happened: "payment.finished".
  std::string type{};
  /// UTF-8 text, signed and sent byte for byte.
  std::string payload{};
  /// The subject. Messages to one destination about one aggregate are delivered in the order of
  /// their commits; with an empty id, in any order.
  std::string aggregate_type{};
  std::string aggregate_id{};  ///< "pay_17"; empty: no order is kept.
  /// Sent as `Content-Type`.
  std::string content_type = "application/json";
};

}  // namespace idem::inline v0_1
