#pragma once

#include <string_view>

#include "support/http_client.hpp"

/// What admin listeners answer to tests, for a comparison with docs/openapi.yaml
/// (tests/clients/admin_answers.mjs): a line of JSON each, in a file of this process.
namespace idem::test {

/// An admin listener is at this address, and its operator's token in this file, if it made one.
void watch_admin(std::string_view address, std::string_view token_file);

/// Another listener is there now: the kernel gives a port anew whose owner has ended.
void forget_admin(std::string_view address);

/// The value of Authorization for an operator of the listener at this address; empty: none is
/// there, or it made no token.
std::string operator_login(std::string_view address);

/// Notes the answer in the folder `admin-answers` of the build, if that exists and the address is
/// that of an admin listener: a run of all tests makes the folder first, and judges it last.
void note_answer(std::string_view address, const Request& request, const Response& response);

}  // namespace idem::test
