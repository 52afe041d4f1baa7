#pragma once

#include "check/run.hpp"
#include "unit/check/fake_api.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace idem::check {

/// The cases of `only` against this API, one request after another as quickly as it answers.
Report run(FakeApi& fake, const Spec& spec, std::vector<std::string> only, Manners manners = {});

/// Of the case of this id; the test fails where the report has none.
const CaseResult& result_of(const Report& report, std::string_view id);
Outcome outcome_of(const Report& report, std::string_view id);

}  // namespace idem::check
