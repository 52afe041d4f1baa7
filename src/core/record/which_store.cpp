#include "core/record/which_store.hpp"

#include "core/bytes/ascii.hpp"

#include <idem/record.hpp>

namespace idem {

std::string store_id_text(const StoreId& id) {
  std::string text = to_hex(id);
  for (const std::size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

std::optional<std::string> why_not(const WhichStore& which, const std::optional<StoreId>& there) {
  if (!there && !which.id.empty()) {
    return std::string(no_store_here) + ", and store_id (--store-id) is " + which.id +
           ": in a new one every key would run again. Bring that store back, or leave store_id out "
           "to begin with an empty one";
  }
  if (!there && !which.make) {
    return std::string(no_store_here) +
           ", and this command makes none. Write the URL of the store, or make one: start a "
           "gateway, or run idem migrate --store URL";
  }
  if (!there || which.id.empty() || lower_case(which.id) == store_id_text(*there)) {
    return std::nullopt;
  }
  if (which.contradicted) which.contradicted();
  return "this is the store " + store_id_text(*there) + ", and store_id (--store-id) is " +
         which.id + ": keys of that store would run again. Write its URL, or store_id: " +
         store_id_text(*there) + " if you mean this one";
}

std::string another_store(const StoreId& opened, const StoreId& there) {
  return "there is now another store, " + store_id_text(there) +
         "; this process was started with the store " + store_id_text(opened);
}

}  // namespace idem
