/* Any plan, for an attempt of which wlbd knows the nodes, or their ranks, or nothing: refused with a reason, or a plan
 * whose placement has each rank of the layout once. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/requests/plan_check.h"
#include "coordinator/wlbd/requests/plan_places.h"
#include "tests/fuzz/scratch.h"

static const char *const facts[] = {
	"{\"nodes\":[\"n1\",\"n3\",\"n2\",\"n4\"],\"tasks_per_node\":2,\"ranks_on\":null}",
	"{\"nodes\":[\"n1\",\"n2\",\"n3\"],\"tasks_per_node\":3,\"ranks_on\":{\"n1\":2,\"n2\":2}}",
	"{\"nodes\":null,\"tasks_per_node\":null,\"ranks_on\":{\"n1\":2,\"n2\":1}}",
	"{\"nodes\":null,\"tasks_per_node\":null,\"ranks_on\":null}",
};

enum { FACTS = sizeof(facts) / sizeof(facts[0]), ENTRIES_CUT = 32 };

static json_int_t number_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void check_accepted(const json_t *plan, const struct wlbd_attempt_places *places)
{
	const json_t *layout = json_object_get(plan, "layout"), *list = json_object_get(plan, "placement");
	json_int_t ranks =
		number_of(layout, "tp") * number_of(layout, "cp") * number_of(layout, "pp") * number_of(layout, "dp");
	json_int_t next = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		must(number_of(json_array_get(list, i), "first_rank") == next);
		next += number_of(json_array_get(list, i), "ranks");
	}
	must(json_array_size(list) == 0 || next == ranks || (json_array_size(list) == ENTRIES_CUT && next < ranks));
	must(places->tasks_per_node == 0 ||
	     ranks + number_of(plan, "idle_ranks") == (json_int_t)places->nodes.count * places->tasks_per_node);
}

static void check_plan(const json_t *plan, const char *text)
{
	struct wlbd_attempt_places places;
	struct wlb_error error = {0};
	json_t *result = json_loads(text, 0, NULL);
	must(result != NULL && wlbd_attempt_places_read(result, &places, &error) == 0);
	int names_left = wlbd_plan_names_most(&places);
	if (wlbd_plan_places_check(plan, &places, &names_left, &error) == 0)
		check_accepted(plan, &places);
	else
		must(error.message[0] != '\0');
	must(names_left >= 0);
	wlbd_attempt_places_free(&places);
	json_decref(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	json_t *plan = wlbd_body_parse((const char *)data, bytes, &error);
	if (plan != NULL && wlbd_plan_check(plan, &error) == 0)
		for (int i = 0; i < FACTS; i++)
			check_plan(plan, facts[i]);
	else
		must(error.message[0] != '\0');
	json_decref(plan);
	return 0;
}
