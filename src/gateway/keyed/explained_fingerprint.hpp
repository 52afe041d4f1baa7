#pragma once

#include "core/exchange/explanation.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// What counts of a request, and what does not. `matches` stays none.
Explanation::Fingerprint explained_fingerprint(const RequestInQuestion& request,
                                               const http::RequestHead& head,
                                               const GatewaySettings& settings, const Route& route);

/// In which parts a request differs from the one that made the record.
struct PartsCompared {
  std::vector<Explanation::Difference> differences;
  std::string why;  ///< A sentence: how that was found out, or why it is not known.
};

/// Where the request is stored with the record, the two are compared. Otherwise the record has one
/// digest: then the request is tried with one part of it changed, and a change after which the
/// digests are equal shows the part that differs, and no other. Of an encoded body `decoded_max`
/// bytes at most are decoded; with more, nothing is compared.
PartsCompared compared_parts(const http::RequestHead& head, std::string_view body,
                             const Record& record, const Identity& identity,
                             const GatewaySettings& settings, const Route& route,
                             std::size_t decoded_max);

}  // namespace idem::gateway
