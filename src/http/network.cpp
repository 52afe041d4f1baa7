#include "http/network.hpp"

#include "loop/asio.hpp"

#include <algorithm>
#include <charconv>

namespace idem::http {
namespace {

using Parsed = std::expected<Network, std::string>;

Parsed wrong(const std::string& text, std::string_view why) {
  return std::unexpected("\"" + text + "\" " + std::string(why));
}

/// The bits of one byte that a prefix of `bits` covers.
std::uint8_t mask_of(unsigned bits, std::size_t byte) noexcept {
  const unsigned before = static_cast<unsigned>(byte) * 8;
  const unsigned covered = bits <= before ? 0 : std::min(8U, bits - before);
  return static_cast<std::uint8_t>(0xFF00U >> covered);
}

}  // namespace

PeerAddress peer_address_of(const asio::ip::address& address) {
  PeerAddress peer;
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  peer.v4 = address.is_v4() || mapped;
  if (peer.v4) {
    const auto v4 =
        mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()) : address.to_v4();
    const auto bytes = v4.to_bytes();
    std::ranges::copy(bytes, peer.bytes.begin());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::ranges::copy(bytes, peer.bytes.begin());
  }
  return peer;
}

std::string text_of(const PeerAddress& address) {
  if (!address.v4) return asio::ip::address_v6(address.bytes).to_string();
  asio::ip::address_v4::bytes_type bytes{};
  std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
  return asio::ip::address_v4(bytes).to_string();
}

Parsed Network::parse(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    return wrong(text, "has no prefix length; write 192.0.2.7/32 or 2001:db8::7/128 for one host");
  }
  if (text.find('%') != std::string::npos) {
    return wrong(text, "names a zone; addresses are compared without it");
  }
  boost::system::error_code error;
  const auto address = asio::ip::make_address(text.substr(0, slash), error);
  if (error) return wrong(text, "is no network; write 192.0.2.0/24 or 2001:db8::/32");
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return wrong(text, "is IPv4 in IPv6 spelling; write 192.0.2.0/24");
  }
  Network network;
  network.prefix_ = peer_address_of(address);
  const unsigned longest = network.prefix_.v4 ? 32 : 128;
  const char* end = text.data() + text.size();
  const auto digits = std::string_view(text).substr(slash + 1);
  const auto parsed = std::from_chars(digits.data(), end, network.bits_);
  if (parsed.ec != std::errc{} || parsed.ptr != end || network.bits_ > longest ||
      (digits.size() > 1 && digits.front() == '0')) {
    return wrong(text, network.prefix_.v4 ? "needs a prefix length from 1 to 32"
                                          : "needs a prefix length from 1 to 128");
  }
  if (network.bits_ == 0) {
    return wrong(text, "is every address; write --trust-scope-header if you mean that");
  }
  for (std::size_t i = 0; i < network.prefix_.bytes.size(); ++i) {
    if ((network.prefix_.bytes[i] & ~mask_of(network.bits_, i)) != 0) {
      return wrong(text,
                   "has bits behind its prefix; write the network's first address, as in "
                   "192.0.2.0/24");
    }
  }
  return network;
}

bool Network::contains(const PeerAddress& address) const noexcept {
  if (address.v4 != prefix_.v4) return false;
  for (std::size_t i = 0; i < address.bytes.size(); ++i) {
    if ((address.bytes[i] & mask_of(bits_, i)) != prefix_.bytes[i]) return false;
  }
  return true;
}

bool any_contains(const std::vector<Network>& networks, const PeerAddress& address) noexcept {
  return std::ranges::any_of(networks,
                             [&](const Network& network) { return network.contains(address); });
}

}  // namespace idem::http
