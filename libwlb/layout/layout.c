/* Parses and formats policies and layouts, and computes the coordinates of places in a layout. */
#include "libwlb/wlb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value of one "key=N" of a policy, or -1. N is plain decimal, at most 6 digits. */
static int parse_ways(const char *text, size_t length)
{
	if (length < 1 || length > 6)
		return -1;
	int ways = 0;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		ways = ways * 10 + (text[i] - '0');
	}
	return ways >= 1 ? ways : -1;
}

static int refuse_policy(const char *text, const char *why, struct wlb_error *error)
{
	return wlb_fail(error, "layout '%.100s': %s; use auto, off, or degrees of parallelism such as tp=2,cp=1,pp=2",
	                text, why);
}

static int *policy_field(struct wlb_layout *layout, const char *key)
{
	if (strncmp(key, "tp=", 3) == 0)
		return &layout->tp;
	if (strncmp(key, "cp=", 3) == 0)
		return &layout->cp;
	if (strncmp(key, "pp=", 3) == 0)
		return &layout->pp;
	if (strncmp(key, "dp=", 3) == 0)
		return &layout->dp;
	return NULL;
}

static int parse_fixed(const char *text, struct wlb_layout *fixed, struct wlb_error *error)
{
	*fixed = (struct wlb_layout){0};
	for (const char *item = text;;) {
		size_t length = strcspn(item, ",");
		int *field = policy_field(fixed, item);
		if (field == NULL)
			return refuse_policy(text, "it is none of the known forms", error);
		if (*field != 0)
			return refuse_policy(text, "a dimension is given twice", error);
		*field = parse_ways(item + 3, length - 3);
		if (*field < 0)
			return refuse_policy(text, "each dimension is a whole number from 1 to 999999", error);
		if (item[length] == '\0')
			break;
		item += length + 1;
	}
	fixed->tp = fixed->tp ? fixed->tp : 1;
	fixed->cp = fixed->cp ? fixed->cp : 1;
	fixed->pp = fixed->pp ? fixed->pp : 1;
	return 0;
}

int wlb_policy_parse(const char *text, struct wlb_policy *policy, struct wlb_error *error)
{
	*policy = (struct wlb_policy){.kind = WLB_POLICY_OFF};
	if (text == NULL)
		return refuse_policy("", "it is empty", error);
	if (strcmp(text, "off") == 0)
		return 0;
	if (strcmp(text, "auto") == 0) {
		policy->kind = WLB_POLICY_AUTO;
		return 0;
	}
	policy->kind = WLB_POLICY_FIXED;
	return parse_fixed(text, &policy->fixed, error);
}

int wlb_policy_format(const struct wlb_policy *policy, char *buffer, size_t size)
{
	const struct wlb_layout *f = &policy->fixed;
	if (policy->kind == WLB_POLICY_OFF)
		return snprintf(buffer, size, "off");
	if (policy->kind == WLB_POLICY_AUTO)
		return snprintf(buffer, size, "auto");
	if (f->dp == 0)
		return snprintf(buffer, size, "tp=%d,cp=%d,pp=%d", f->tp, f->cp, f->pp);
	return wlb_layout_format(f, buffer, size);
}

int wlb_layout_format(const struct wlb_layout *l, char *buffer, size_t size)
{
	return snprintf(buffer, size, "tp=%d,cp=%d,pp=%d,dp=%d", l->tp, l->cp, l->pp, l->dp);
}

int wlb_layout_ranks(const struct wlb_layout *l)
{
	return l->tp * l->cp * l->pp * l->dp;
}

struct wlb_coordinates wlb_layout_coordinates(const struct wlb_layout *l, int place)
{
	struct wlb_coordinates coords;
	coords.tp = place % l->tp;
	place /= l->tp;
	coords.cp = place % l->cp;
	place /= l->cp;
	coords.pp = place % l->pp;
	coords.dp = place / l->pp;
	return coords;
}

int wlb_layout_place(const struct wlb_layout *l, const struct wlb_coordinates *coords)
{
	return ((coords->dp * l->pp + coords->pp) * l->cp + coords->cp) * l->tp + coords->tp;
}
