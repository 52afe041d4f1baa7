#include "settings.hpp"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <string_view>

namespace payments {
namespace {

constexpr const char* usage =
    R"(usage: payments [--store URL]                sqlite:./payments.db, or postgres://...
                [--listen HOST:PORT]         127.0.0.1:9100; port 0 takes a free one
                [--provider URL]             http://127.0.0.1:9000
                [--provider-is deduplicates|can-be-asked|neither]
                [--receipts URL --receipts-secret-file FILE]
                [--lease MS] [--call-timeout MS] [--no-completer]
)";

bool read_secret(const std::string& file, std::string& into) {
  std::ifstream in(file);
  return static_cast<bool>(in >> into);
}

bool read_ms(std::string_view text, idem::Millis& into) {
  long count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  into = idem::Millis(count);
  return error == std::errc{} && end == text.data() + text.size() && count > 0;
}

bool read_kind(std::string_view word, Provider& into) {
  if (word == "deduplicates") return into = Provider::deduplicates, true;
  if (word == "can-be-asked") return into = Provider::can_be_asked, true;
  if (word == "neither") return into = Provider::neither, true;
  return false;
}

bool parse_flag(Settings& settings, std::string_view name, const std::string& value) {
  if (name == "--store") return settings.store = value, true;
  if (name == "--listen") return settings.listen = value, true;
  if (name == "--provider") return settings.provider = value, true;
  if (name == "--provider-is") return read_kind(value, settings.provider_is);
  if (name == "--receipts") return settings.receipts = value, true;
  if (name == "--receipts-secret-file") return read_secret(value, settings.receipts_secret);
  if (name == "--lease") return read_ms(value, settings.lease);
  if (name == "--call-timeout") return read_ms(value, settings.call_timeout);
  return false;
}

}  // namespace

std::optional<Settings> parse_settings(int count, char** words) {
  Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = words[i];
    bool is_fine = true;
    if (name == "--no-completer") {
      settings.completes = false;
    } else {
      is_fine = i + 1 < count && parse_flag(settings, name, words[i + 1]);
      ++i;
    }
    if (!is_fine) return std::fputs(usage, stderr), std::nullopt;
  }
  return settings;
}

}  // namespace payments
