#include "cli/settings/parse.hpp"
#include "cli/settings/secret_file.hpp"
#include "config/words.hpp"

#include <idem/webhook.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace idem::cli {
namespace {

using config::shown;

/// The secret in a file, without the end of the line.
std::optional<std::string> read_webhook_secret(const Given& file, Complaints& complaints) {
  if (const auto fine = check_secret_file(file.text); !fine) {
    complaints.add(file.place, fine.error());
    return std::nullopt;
  }
  std::ifstream in(file.text);
  std::string secret;
  if (in >> secret) return secret;
  complaints.add(file.place, file.text + " holds no secret; write one that begins with whsec_");
  return std::nullopt;
}

std::optional<Destination> parse_destination(const DestinationGiven& given,
                                             Complaints& complaints) {
  const std::size_t before = complaints.lines().size();
  Destination destination{.name = given.name.text};
  if (destination.name.size() > limits::message_name_bytes_max) {
    complaints.add(given.name.place, "a name has 255 bytes at most");
  }
  WebhookOptions options{
      .url = given.url.text, .source = given.source.text, .ca_file = given.ca.text};
  check_ca(given.ca, complaints);
  for (const Given& file : given.secret_files.items) {
    if (auto secret = read_webhook_secret(file, complaints)) {
      options.secrets.push_back(std::move(*secret));
    }
  }
  parse_given_duration(given.deduplicates, destination.repetition.deduplicates, complaints);
  parse_given_duration(given.timeout, destination.timeout, complaints);
  if (destination.timeout <= Millis(0) || destination.timeout > limits::call_timeout_default) {
    complaints.add(given.timeout.place, shown(given.timeout.text) +
                                            " is out of range; write more than 0 and at most 20s");
  }
  destination.attempts_max = std::atoi(given.attempts.text.c_str());
  if (complaints.lines().size() != before) return std::nullopt;
  auto send = webhook(options);
  if (!send) {
    complaints.add(given.url.place, send.error());
    return std::nullopt;
  }
  destination.send = std::move(*send);
  return destination;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Destination>& destinations) {
  std::vector<std::string> names;
  for (const Destination& one : destinations) names.push_back(one.name);
  return names;
}

std::vector<Destination> parse_destinations(const std::vector<DestinationGiven>& given,
                                            Complaints& complaints) {
  std::vector<Destination> parsed;
  for (const DestinationGiven& one : given) {
    const bool is_there = std::ranges::any_of(
        parsed, [&](const Destination& other) { return other.name == one.name.text; });
    if (is_there) {
      complaints.add(one.name.place, shown(one.name.text) + " names two destinations");
      continue;
    }
    if (auto destination = parse_destination(one, complaints)) {
      parsed.push_back(std::move(*destination));
    }
  }
  return parsed;
}

}  // namespace idem::cli
