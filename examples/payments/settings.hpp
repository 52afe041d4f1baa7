#pragma once

#include <idem/guard.hpp>
#include <idem/worker_limits.hpp>

#include <optional>
#include <string>

namespace payments {

/// What a provider does with a call that it has seen before. Wrong here is a second charge.
enum class Provider {
  deduplicates,  ///< Knows our key for 24 hours.
  can_be_asked,  ///< Charges again, but lists what was done under a key.
  neither,
};

struct Settings {
  std::string store = "sqlite:./payments.db";
  std::string listen = "127.0.0.1:9100";
  std::string provider = "http://127.0.0.1:9000";
  Provider provider_is = Provider::deduplicates;
  std::string receipts;         ///< Where receipts go; empty: nobody relays them here.
  std::string receipts_secret;  ///< "whsec_...", read from a file.
  idem::Millis lease = idem::limits::lease_default;
  idem::Millis call_timeout = idem::limits::call_timeout_default;
  bool completes = true;  ///< Goes on with what crashed.
};

/// None: a word was wrong, and stderr says how it is meant.
std::optional<Settings> parse_settings(int count, char** words);

}  // namespace payments
