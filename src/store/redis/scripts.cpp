#include "store/redis/scripts.hpp"

#include "core/bytes/hex.hpp"

#include <idem/assert.hpp>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace idem::redis {
namespace {

std::string with_flags(std::string_view name, std::string_view flags) {
  const auto found = std::ranges::find(texts(), name, &ScriptText::name);
  IDEM_ASSERT(found != texts().end());
  const std::string first = flags.empty() ? "#!lua\n" : fmt::format("#!lua flags={}\n", flags);
  return first + std::string(found->text);
}

}  // namespace

std::string sha1_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  IDEM_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  return hex_of({reinterpret_cast<const char*>(digest.data()), size});
}

Script::Script(std::string_view name, std::string_view flags)
    : text_(with_flags(name, flags)), digest_(sha1_of(text_)) {}

CommandWriter Script::call(std::string& out, std::string_view key, std::size_t arguments) const {
  CommandWriter writer(out, 4 + arguments);
  writer.add("EVALSHA").add(digest_).add("1").add(key);
  return writer;
}

std::string Scripts::load() const {
  std::string commands;
  for (const Script* script :
       {&reserve, &settle, &look, &close, &open, &swap, &cache_put, &compare, &relist,
        &journal_append, &journal_read, &journal_list, &journal_drop}) {
    CommandWriter(commands, 3).add("SCRIPT").add("LOAD").add(script->text());
  }
  return commands;
}

const Scripts& scripts() {
  static const Scripts all;
  return all;
}

}  // namespace idem::redis
