#pragma once

/// What a process that serves many connections sets up for itself at its start.
namespace idem::cli {

/// Raises the limit of descriptors to the hard limit.
void raise_descriptor_limit();

}  // namespace idem::cli
