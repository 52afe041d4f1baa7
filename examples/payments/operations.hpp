#pragma once

#include "provider_client.hpp"

#include <idem/phases.hpp>

#include <optional>
#include <string>
#include <vector>

namespace payments {

/// Makes missing tables. Returns the database's error, if any.
std::optional<std::string> make_tables(idem::Engine& engine);

/// POST /payments: payment_created → charged → finished, with a receipt.
std::vector<idem::Phase> payment_phases(const ProviderClient& provider);

/// POST /refunds: refund_created → refunded → finished, with a receipt.
std::vector<idem::Phase> refund_phases(const ProviderClient& provider);

/// GET /payments/{id}
idem::Response show_payment(idem::Engine& engine, const std::string& scope, const std::string& id);

/// Named after the record: a retried payment has the same id.
std::string payment_id(const idem::RecordId& record);
std::string refund_id(const idem::RecordId& record);

idem::Response json_response(int status, const std::string& body);

}  // namespace payments
