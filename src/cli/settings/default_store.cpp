#include "cli/settings/default_store.hpp"

#include "store/known_kinds.hpp"

#include <filesystem>
#include <system_error>

namespace idem::cli {

void settle_default_store(config::Given& store, config::Complaints& complaints) {
  const std::filesystem::path present = path_in(store.text).value();
  const std::filesystem::path earlier = present.parent_path() / "idem.db";
  std::error_code code;
  if (!std::filesystem::exists(earlier, code)) return;
  const std::string file = "sqlite:" + earlier.string();
  if (!std::filesystem::exists(present, code)) {
    store.text = file;
    return;
  }
  complaints.add(store.place, "there are two stores that may be the default; write " + file +
                                  " or " + store.text);
}

}  // namespace idem::cli
