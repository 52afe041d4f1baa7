#pragma once

#include <optional>
#include <string>
#include <string_view>

/// What stands in the URL of a store.
namespace idem::inline v0_1 {

/// By the scheme alone, so that who links no such store needs nothing of it.
bool is_postgres_url(std::string_view url) noexcept;
bool is_redis_url(std::string_view url) noexcept;

/// Why `path`, behind "sqlite:", is not taken for a file: a sentence with what to write. None: it
/// is.
std::optional<std::string> why_no_store_path(std::string_view path);

/// What `url` was probably meant to be, where its scheme is none of ours: a sentence.
std::optional<std::string> what_was_meant(std::string_view url);

}  // namespace idem::inline v0_1
