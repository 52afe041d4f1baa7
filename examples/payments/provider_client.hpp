#pragma once

#include "settings.hpp"

#include <idem/phases.hpp>

#include <string>

namespace payments {

/// A client of the payment provider.
class ProviderClient {
 public:
  explicit ProviderClient(const Settings& settings)
      : url_(settings.provider), is_(settings.provider_is), timeout_(settings.call_timeout) {}

  /// A phase's call: POST `path` with the body that `body_of` makes of the request. Its answer is
  /// the provider's, also for a declined card.
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

/// The provider's own id in its answer; empty: the provider refused.
std::string provider_id(const std::string& answer);

}  // namespace payments
