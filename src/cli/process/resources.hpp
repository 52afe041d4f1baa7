#pragma once

#include <cstdint>
#include <string>

/// What a process that serves many connections sets up for itself at its start.
namespace idem::cli {

/// Raises the limit of descriptors to the hard limit.
void raise_descriptor_limit();

/// The descriptors that so many clients, the store and the rest of the process may need at once.
std::uint64_t descriptors_for(std::uint64_t clients, const std::string& store_url);

/// How many of `clients` may be served within this process's limit: the embedded store opens files
/// while it serves, and ends the process if it cannot. With other stores, all of them.
std::size_t clients_within_limit(std::size_t clients, const std::string& store_url);

}  // namespace idem::cli
