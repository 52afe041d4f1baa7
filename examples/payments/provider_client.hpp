#pragma once

#include "settings.hpp"

#include <idem/phases.hpp>

#include <string>

namespace payments {

/// The payment provider, as far as this service talks to it.
class ProviderClient {
 public:
  explicit ProviderClient(const Settings& settings)
      : url_(settings.provider), is_(settings.provider_is), timeout_(settings.call_timeout) {}

  /// A phase's call: POST `path` with what `body_of` makes of the request. What the provider says
  /// of it is the answer, also that a card was declined.
  idem::ForeignCall call(std::string path,
                         std::function<std::string(const idem::PhaseCall&)> body_of) const;

 private:
  idem::CallEnd send(const idem::PhaseCall& call, const std::string& path,
                     const std::string& body) const;
  idem::LookedUp look_up(const idem::PhaseCall& call, const std::string& path) const;

  std::string url_;
  Provider is_;
  idem::Millis timeout_;
};

/// The provider's own id in its answer; empty: it was refused.
std::string provider_id(const std::string& answer);

}  // namespace payments
