#pragma once

#include "core/exchange/answers.hpp"
#include "core/exchange/problem.hpp"
#include "http/head.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

/// What every part of the admin API asks of a request, and says of it.
namespace idem::admin {

Answer json_answer(std::string body);
Answer invalid(std::string detail, std::optional<int> status = std::nullopt);
Answer not_allowed(std::string_view methods);
Answer store_trouble(const StoreError& error);
/// A problem with the store's verdict, and with the moment from which on it would be another;
/// empty: there is none.
Answer refused_answer(const Problem& problem, std::string_view verdict,
                      const std::string& counts_from);

/// `application/json`, with whatever parameters: what a web page cannot send without being asked
/// first.
bool is_json(const http::RequestHead& head);

/// Who says so: what stands in `Idem-Operator` is believed, as everything on this listener is.
std::optional<std::string> source_of(const http::RequestHead& head);

}  // namespace idem::admin
