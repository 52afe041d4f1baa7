#pragma once

#include <string>

namespace idem::cli {

/// Prints on stderr why a verb of `idem store` that asks no gateway ends, and returns `code`.
int complain_of_store(const std::string& sentence, int code);

}  // namespace idem::cli
