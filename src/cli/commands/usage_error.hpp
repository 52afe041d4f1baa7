#pragma once

#include <CLI/CLI.hpp>

namespace idem::cli {

/// Says on stderr what is wrong with the words of a command line, and what to write instead.
/// `app` has parsed them, and `error` is why it refused. The exit code.
int refuse_usage(const CLI::App& app, const CLI::ParseError& error);

}  // namespace idem::cli
