#pragma once

#include <idem/fingerprint.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Bytes that lie in a store and may be read only by who has a secret: AES-256-GCM, each under a
/// key of its own, which is derived from the secret and a random salt. So no number of messages
/// wears a secret out. What is sealed names its secret, so that several may be live.
namespace idem {

/// `bound_to` is not stored: who opens it must say the same.
std::string seal(const Secret& secret, std::string_view plain, std::string_view bound_to);

/// Nothing where it was sealed under none of `secrets`, bound to something else, or changed.
std::optional<std::string> unseal(std::span<const Secret> secrets, std::string_view sealed,
                                  std::string_view bound_to);

}  // namespace idem
