#include "fuzz/targets.hpp"

#include <cstddef>
#include <cstdint>

/// The entry point of libFuzzer; built once per target. IDEM_FUZZ_TARGET is the target's function.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  idem::fuzz::IDEM_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
