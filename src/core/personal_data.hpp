#pragma once

#include <string_view>

namespace idem {

/// Whether a key looks as if it held an e-mail address, a phone number in international form or the
/// number of a payment card (protocol.md §8). A guess: made to be counted, or to refuse the key
/// where an operator asks for that.
bool looks_personal(std::string_view key) noexcept;

}  // namespace idem
