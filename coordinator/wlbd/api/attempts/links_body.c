#include "coordinator/wlbd/api/attempts/links_body.h"

#include <stdio.h>
#include <stdlib.h>

#include "coordinator/wlbd/http/fields.h"
#include "coordinator/wlbd/rules/links.h"

enum { NAMED_MAX = 4 };

/* Returns an object with the index of each name; NULL if out of memory. */
static json_t *index_names(const json_t *nodes)
{
	json_t *known = json_object();
	for (size_t i = 0; known != NULL && i < json_array_size(nodes); i++)
		json_object_set_new(known, json_string_value(json_array_get(nodes, i)), json_integer((json_int_t)i));
	return known;
}

static int check_known(const json_t *known, const char *name, struct wlb_error *error)
{
	if (json_object_get(known, name) != NULL)
		return 0;
	return wlb_fail(error, "'%.64s': must be one of nodes", name);
}

static int check_unreached(const json_t *unreached, const json_t *nodes, struct wlb_error *error)
{
	const char *name;
	const json_t *list;
	size_t names = 0;
	int rc = 0;
	json_t *known = index_names(nodes);
	json_object_foreach((json_t *)unreached, name, list)
	{
		const json_t *checked;
		if ((rc = check_known(known, name, error)) != 0 ||
		    (rc = wlbd_field_names(unreached, name, WLBD_REQUIRED, WLBD_UNREACHED_MAX, &checked, error)) != 0)
			break;
		names += json_array_size(list);
		if (names > WLBD_UNREACHED_MAX)
			rc = wlb_fail(error, "%zu names: %d at most", names, WLBD_UNREACHED_MAX);
		for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
			rc = check_known(known, json_string_value(json_array_get(list, i)), error);
		if (rc != 0)
			break;
	}
	json_decref(known);
	return rc;
}

int wlbd_links_body_read(const json_t *body, const json_t *nodes, struct wlbd_links_body *out, struct wlb_error *error)
{
	const json_t *links = NULL;
	*out = (struct wlbd_links_body){0};
	if (wlbd_field_object(body, "links", WLBD_OPTIONAL, &links, error) != 0)
		return -1;
	if (links == NULL)
		return 0;
	out->can_check = true;
	if (wlbd_field_boolean(links, "checked", WLBD_REQUIRED, &out->checked, error) != 0 ||
	    wlbd_field_object(links, "unreached", WLBD_OPTIONAL, &out->unreached, error) != 0)
		return wlb_fail_in(error, "links");
	if (out->unreached != NULL && check_unreached(out->unreached, nodes, error) != 0)
		return wlb_fail_in(error, "links: unreached");
	return 0;
}

/* Fills links[] with those between two known nodes; returns their number. */
static int list_links(const struct wlbd_links_body *body, const json_t *known, struct wlbd_broken_link *links)
{
	const char *name;
	const json_t *list;
	int count = 0;
	json_object_foreach((json_t *)body->unreached, name, list)
	{
		const json_t *from = json_object_get(known, name);
		for (size_t i = 0; from != NULL && i < json_array_size(list); i++) {
			const json_t *to = json_object_get(known, json_string_value(json_array_get(list, i)));
			if (to != NULL)
				links[count++] = (struct wlbd_broken_link){(int)json_integer_value(from),
				                                           (int)json_integer_value(to)};
		}
	}
	return count;
}

/* Returns those of the names that are known; NULL: there is no list. */
static json_t *known_names(const json_t *list, const json_t *known)
{
	json_t *names = list != NULL ? json_array() : NULL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *name = json_array_get(list, i);
		if (json_object_get(known, json_string_value(name)) != NULL)
			json_array_append(names, name);
	}
	return names;
}

/* "n2 does not reach n1, n3 and n4". */
static void describe(const char *name, const json_t *missing, char *text, size_t size)
{
	size_t count = json_array_size(missing);
	int length = snprintf(text, size, "%.64s does not reach ", name);
	if (count > NAMED_MAX) {
		snprintf(text + length, size - (size_t)length, "%zu nodes", count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		length += snprintf(text + length, size - (size_t)length, "%s%.64s",
		                   i == 0           ? ""
		                   : i + 1 == count ? " and "
		                                    : ", ",
		                   json_string_value(json_array_get(missing, i)));
}

const char *wlbd_links_body_worst(const struct wlbd_links_body *links, const json_t *nodes,
                                  char why[WLBD_LINKS_WHY_SIZE])
{
	struct wlbd_broken_link *list = calloc(WLBD_UNREACHED_MAX, sizeof(*list));
	json_t *known = index_names(nodes);
	const char *name = NULL;
	if (list != NULL && known != NULL && links->unreached != NULL) {
		int count = list_links(links, known, list);
		int worst = wlbd_links_worst(list, count, (int)json_array_size(nodes));
		name = worst < 0 ? NULL : json_string_value(json_array_get(nodes, (size_t)worst));
	}
	json_t *missing = known_names(json_object_get(links->unreached, name), known);
	if (name != NULL && json_array_size(missing) > 0)
		describe(name, missing, why, WLBD_LINKS_WHY_SIZE);
	else if (name != NULL)
		snprintf(why, WLBD_LINKS_WHY_SIZE, "other nodes do not reach %.64s", name);
	json_decref(missing);
	json_decref(known);
	free(list);
	return name;
}
