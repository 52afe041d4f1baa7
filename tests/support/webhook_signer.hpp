#pragma once

#include <string>
#include <string_view>

namespace idem::test {

/// The example secret of the Standard Webhooks specification.
inline constexpr std::string_view webhook_example_secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// `webhook-signature` as Standard Webhooks has it, written without a look at the provider's.
std::string webhook_signature(std::string_view secret, std::string_view id,
                              std::string_view timestamp, std::string_view body);

}  // namespace idem::test
