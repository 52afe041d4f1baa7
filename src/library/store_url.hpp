#pragma once

#include "store/known_kinds.hpp"

#include <optional>
#include <string>
#include <string_view>

/// The parts of a store's URL.
namespace idem::inline v0_1 {

/// What a kind whose URLs are paths has behind the scheme.
std::string_view path_of(const KnownKind& kind, std::string_view url) noexcept;

/// Why `path`, behind the scheme of `kind`, does not name a file or directory: a sentence with what
/// to write. None: it does.
std::optional<std::string> why_no_store_path(const KnownKind& kind, std::string_view path);

/// What a `url` with an unknown scheme was probably meant to be: a sentence.
std::optional<std::string> what_was_meant(std::string_view url);

}  // namespace idem::inline v0_1
