#pragma once

#include "cli/settings/gateway_flags.hpp"

/// From texts to values. Each says with false that it complained, and then leaves `out` alone.
namespace idem::cli {

/// Where messages go. What is wrong is complained about, and left out.
std::vector<Destination> parse_destinations(const std::vector<DestinationGiven>& given,
                                            Complaints& complaints);

/// Who knows whether work was done, by name. What is wrong is complained about, and left as null.
Providers parse_providers(const std::vector<ProviderGiven>& given, bool has_scopes,
                          Complaints& complaints);
/// Those of them that tell by themselves. `keys_are_shared`: a client's key may be that of two
/// records.
using EventSources = std::map<std::string, std::shared_ptr<const EventSource>, std::less<>>;
EventSources parse_event_sources(const std::vector<ProviderGiven>& given, bool keys_are_shared,
                                 Complaints& complaints);

bool parse_given_duration(const Given& given, Millis& out, Complaints& complaints);
bool parse_given_size(const Given& given, std::uint64_t most, std::uint64_t& out,
                      Complaints& complaints);
/// Names of fields, each once.
bool parse_field_names(const GivenList& given, std::vector<std::string>& out,
                       Complaints& complaints);
/// "30s" or "1500ms".
std::string to_text(Millis duration);

inline bool is_true(const Given& given) { return given.text == "true"; }

/// What a route says, or the defaults, over what stands in `out` already.
void parse_route(const RouteGiven& given, gateway::Route& out, Complaints& complaints);

/// The routes in front of `rest`, checked each for itself and against each other.
std::vector<gateway::Route> parse_routes(const std::vector<RouteGiven>& given,
                                         const gateway::Route& rest, Complaints& complaints);

/// Refuses what a worker's routes have no use for.
void check_worker_routes(std::vector<RouteGiven> given, Complaints& complaints);

/// Each route's provider must be one of them.
void parse_reconcile(const std::vector<RouteGiven>& given, const Providers& providers,
                     std::vector<gateway::Route>& routes, Complaints& complaints);

}  // namespace idem::cli
