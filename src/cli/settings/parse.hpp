#pragma once

#include "cli/settings/gateway_flags.hpp"
#include "cli/settings/gateway_options.hpp"

/// Parses texts to values. A result false means that there is a complaint and `out` is unchanged.
namespace idem::cli {

/// The outbox's destinations. An invalid one is left out, with a complaint.
std::vector<Destination> parse_destinations(const std::vector<DestinationGiven>& given,
                                            Complaints& complaints);

/// The providers by name. An invalid one is null, with a complaint.
Providers parse_providers(const std::vector<ProviderGiven>& given, bool has_scopes,
                          Complaints& complaints);
/// The providers that send events. `keys_are_shared`: two records may have the same client's key.
using EventSources = std::map<std::string, std::shared_ptr<const EventSource>, std::less<>>;
EventSources parse_event_sources(const std::vector<ProviderGiven>& given, bool keys_are_shared,
                                 Complaints& complaints);

bool parse_given_duration(const Given& given, Millis& out, Complaints& complaints);
bool parse_given_size(const Given& given, std::uint64_t most, std::uint64_t& out,
                      Complaints& complaints);
bool parse_given_number(const Given& given, std::size_t& out);
/// Refuses a file that is no CA's; an empty name is none.
void check_ca(const Given& file, Complaints& complaints);
/// A certificate and its key, and the authorities of clients, each empty or given with the others
/// that it needs. `section` of the file: "tls" or "admin_tls".
void parse_server_files(const std::string& section, const Given& cert, const Given& key,
                        const Given& client_ca, http::TlsContext::ServerFiles& out,
                        Complaints& complaints);
/// The collector of traces, if one is given.
void parse_traces(const GatewayFlags& flags, tracing::TraceSettings& out, Complaints& complaints);
/// By which values records are found.
void parse_search(const GatewayFlags& flags, std::optional<gateway::SearchSettings>& out,
                  Complaints& complaints);
/// Who may use the admin API.
void parse_login(const GatewayFlags& flags, GatewayOptions& options, Complaints& complaints);
/// Networks of trusted proxies.
void parse_networks(const GivenList& given, std::vector<http::Network>& out,
                    Complaints& complaints);
/// Names of fields; a duplicate is an error.
bool parse_field_names(const GivenList& given, std::vector<std::string>& out,
                       Complaints& complaints);
/// "30s" or "1500ms".
std::string to_text(Millis duration);

inline bool is_true(const Given& given) { return given.text == "true"; }
/// A control character of ASCII.
inline bool is_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

/// Parses what a route, or the defaults, give; all else in `out` stays.
void parse_route(const RouteGiven& given, gateway::Route& out, Complaints& complaints);

/// The routes in front of `rest`, checked each for itself and against each other.
std::vector<gateway::Route> parse_routes(const std::vector<RouteGiven>& given,
                                         const gateway::Route& rest, Complaints& complaints);

/// Refuses settings of routes that have no effect on a worker.
void check_worker_routes(std::vector<RouteGiven> given, Complaints& complaints);

/// Sets each route's provider, which must be one of `providers`.
void parse_reconcile(const std::vector<RouteGiven>& given, const Providers& providers,
                     std::vector<gateway::Route>& routes, Complaints& complaints);

}  // namespace idem::cli
