#pragma once

#include "loop/asio_names.hpp"

#include <array>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace idem::http {

/// An address without a port. An IPv4 client of an IPv6 listener (`::ffff:192.0.2.1`) is the IPv4
/// address that it is.
struct PeerAddress {
  bool v4 = false;
  std::array<std::uint8_t, 16> bytes{};  ///< Of IPv4 the first four.
  bool operator==(const PeerAddress&) const = default;
};
PeerAddress peer_address_of(const asio::ip::address& address);
/// "192.0.2.1" or "2001:db8::1".
std::string text_of(const PeerAddress& address);

/// A range of addresses by its prefix (RFC 4632, RFC 4291 §2.3).
class Network {
 public:
  /// "192.0.2.0/24" or "2001:db8::/32". Refused with a sentence that says what to write: a missing
  /// or a zero prefix, bits behind the prefix, an IPv4 range in IPv6 spelling, zones.
  static std::expected<Network, std::string> parse(const std::string& text);

  /// An IPv6 range never holds an IPv4 address, however that is spelt.
  bool contains(const PeerAddress& address) const noexcept;

 private:
  PeerAddress prefix_;
  unsigned bits_ = 0;
};

bool any_contains(const std::vector<Network>& networks, const PeerAddress& address) noexcept;

}  // namespace idem::http
