#pragma once

#include "admin/login/role.hpp"
#include "core/exchange/answers.hpp"
#include "core/exchange/problem.hpp"
#include "http/head.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

/// Answers and checks that all parts of the admin API share.
namespace idem::admin {

WireAnswer json_answer(std::string body);
WireAnswer invalid(std::string detail, std::optional<int> status = std::nullopt);
WireAnswer not_allowed(std::string_view methods);
WireAnswer store_trouble(const StoreError& error);
/// 409: the state of what the order is about does not allow it.
WireAnswer state_refused(std::string detail);
/// A problem with the store's verdict and the moment from which the same order would count; empty:
/// there is no such moment.
WireAnswer refused_answer(const Problem& problem, std::string_view verdict,
                          const std::string& counts_from);

/// Whether the content type is `application/json`, with any parameters. A web page cannot send it
/// without a preflight.
bool is_json(const http::RequestHead& head);

/// The source for the evidence log: the caller's name, or the one in `Idem-Operator` where the
/// login proves a role only; nobody verifies that one. None: the field is malformed or appears
/// twice.
std::optional<std::string> source_of(const http::RequestHead& head, const Caller& caller);

}  // namespace idem::admin
