#pragma once

#include <idem/fingerprint.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// Bytes in a store that only the holder of a secret may read: AES-256-GCM, each message under its
/// own key, derived from the secret and a random salt. So one secret serves any number of messages.
/// A sealed message names its secret, so that several may be live.
namespace idem {

/// `bound_to` is not stored: unseal() needs the same.
std::string seal(const Secret& secret, std::string_view plain, std::string_view bound_to);

/// None if it was sealed under none of `secrets`, is bound to something else, or was changed.
std::optional<std::string> unseal(std::span<const Secret> secrets, std::string_view sealed,
                                  std::string_view bound_to);

}  // namespace idem
