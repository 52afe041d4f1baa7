#include "cli/settings/parse.hpp"
#include "config/words.hpp"

#include <idem/search_limits.hpp>

#include <algorithm>

namespace idem::cli {
namespace {

using config::shown;

/// Why this is no place of a value; empty: it is one.
std::string why_no_place(const std::string& text) {
  if (text.size() > limits::search_pointer_bytes_max) {
    return "is longer than " + std::to_string(limits::search_pointer_bytes_max) + " bytes";
  }
  const bool is_pointer =
      !text.empty() && JsonPointer::parse(text) && std::ranges::none_of(text, is_control);
  return is_pointer ? "" : "is no JSON Pointer to a value; write one such as /order_id";
}

std::vector<gateway::SearchSettings::Place> places_of(const GivenList& given,
                                                      Complaints& complaints) {
  std::vector<gateway::SearchSettings::Place> places;
  if (given.items.size() > limits::search_pointers_max) {
    complaints.add(given.place, "at most " + std::to_string(limits::search_pointers_max) +
                                    " places are indexed, because each is a write of the store "
                                    "for a request");
  }
  for (const auto& item : given.items) {
    if (const auto why = why_no_place(item.text); !why.empty()) {
      complaints.add(item.place, shown(item.text) + " " + why);
      continue;
    }
    if (std::ranges::find(places, item.text, &gateway::SearchSettings::Place::text) !=
        places.end()) {
      complaints.add(item.place, shown(item.text) + " is in this list twice; keep one of them");
      continue;
    }
    places.push_back({item.text, *JsonPointer::parse(item.text)});
  }
  return places;
}

}  // namespace

void parse_search(const GatewayFlags& flags, std::optional<gateway::SearchSettings>& out,
                  Complaints& complaints) {
  // A list that is given and empty indexes trace ids and the upstream's references alone.
  if (!flags.search_requests.given && !flags.search_answers.given) return;
  out = {places_of(flags.search_requests, complaints), places_of(flags.search_answers, complaints)};
}

}  // namespace idem::cli
