#pragma once

#include <idem/limits.hpp>
#include <idem/record.hpp>
#include <idem/worker_limits.hpp>

#include <optional>
#include <string>

namespace payments {

/// What a provider does with a repeated call. A wrong value here is a second charge.
enum class Provider {
  deduplicates,  ///< Recognises our key for 24 hours.
  can_be_asked,  ///< Charges again, but lists the charges of a key.
  neither,
};

struct Settings {
  std::string store = "sqlite:./payments.db";
  std::string listen = "127.0.0.1:9100";
  std::string provider = "http://127.0.0.1:9000";
  Provider provider_is = Provider::deduplicates;
  std::string receipts;         ///< Where receipts go; empty: this process relays none.
  std::string receipts_secret;  ///< "whsec_...", read from a file.
  idem::Millis lease = idem::limits::lease_default;
  idem::Millis call_timeout = idem::limits::call_timeout_default;
  bool completes = true;  ///< Runs the completer.
};

/// None: an argument was wrong, and the usage is on stderr.
std::optional<Settings> parse_settings(int count, char** words);

}  // namespace payments
