#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/slurm/topology_order.h"
#include "coordinator/slurm/topology_text.h"

static int parse(const char *text, struct wlb_topology_file *file, struct wlb_error *error)
{
	char *copy = strdup(text);
	assert_non_null(copy);
	*file = (struct wlb_topology_file){0};
	int rc = wlb_topology_file_parse(copy, file, error);
	free(copy);
	return rc;
}

static void reads_a_tree(void **state)
{
	static const char text[] = "# two leaves\n"
				   "SwitchName=s1 Nodes=n[1-2,5]\n"
				   "switchname=s2 nodes=n[3-4] \\\n  LinkSpeed=100 # fast\n\n"
				   "SwitchName=s0 Switches=s[1-2]\n";
	static const int32_t places[] = {0, 1, 2, 3, 4}, leaves[] = {0, 0, 0, 1, 1};
	struct wlb_topology_file file;
	struct wlb_error error;
	int32_t order[5], leaf[5];
	(void)state;
	assert_int_equal(parse(text, &file, &error), 0);
	assert_int_equal(file.topology.count, 3);
	assert_int_equal(file.node_count, 5);
	assert_string_equal(file.nodes[2], "n5");
	assert_string_equal(file.topology.switches[1].name, "s2");
	assert_int_equal(file.topology.switches[2].switches[1], 1);
	assert_int_equal(wlb_topology_order(&file.topology, 5, order, leaf, &error), 0);
	assert_memory_equal(order, places, sizeof(places));
	assert_memory_equal(leaf, leaves, sizeof(leaves));
	wlb_topology_file_keep_first(&file, 3);
	assert_int_equal(file.topology.switches[0].node_count, 3);
	assert_int_equal(file.topology.switches[1].node_count, 0);
	wlb_topology_file_free(&file);
}

static void names_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *said;
	} wrong[] = {
		{"", "no line SwitchName="},
		{"\nNodes=n1", "line 2: 'Nodes=n1': a line begins with SwitchName="},
		{"SwitchName=s1", "line 1: switch s1: has neither Nodes nor Switches"},
		{"SwitchName=s1 Nodes=n[1-", "brackets must be closed"},
		{"SwitchName=s1 Nodes=n1 Nodes=n2", "Nodes=n2: Nodes is there twice"},
		{"SwitchName=s1 Nodes=", "'Nodes=': must be Key=value"},
		{"SwitchName=s1 Colour=red", "'Colour' is unknown"},
		{"SwitchName=s1 Nodes=n1\nSwitchName=s2 Nodes=n[1-2]", "node n1 is there twice"},
		{"SwitchName=s1 Nodes=n1\nSwitchName=s1 Nodes=n2", "switch s1 is there twice"},
		{"SwitchName=s1 Switches=s9", "switch s9 is named by s1 and has no line"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wlb_topology_file file;
		struct wlb_error error;
		assert_int_equal(parse(wrong[i].text, &file, &error), -1);
		if (strstr(error.message, wrong[i].said) == NULL)
			fail_msg("'%s' says: %s", wrong[i].text, error.message);
		wlb_topology_file_free(&file);
	}
}

static int list(const char *text, struct wlb_topology_file *file, struct wlb_error *error)
{
	char *copy = strdup(text);
	assert_non_null(copy);
	*file = (struct wlb_topology_file){0};
	int rc = wlb_topology_listing_parse(copy, file, error);
	free(copy);
	return rc;
}

/* As slurmctld lists it: the nodes below a switch of switches are not its own. */
static void reads_what_slurmctld_lists(void **state)
{
	static const char tree[] = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1,3]\n"
				   "SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[2,4]\n"
				   "SwitchName=s0 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1-2]\n";
	static const char blocks[] = "BlockName=b1 BlockIndex=0 Nodes=n[1,3] BlockSize=2\n"
				     "BlockName=b2 BlockIndex=1 Nodes=n[2,4] BlockSize=2\n"
				     "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n";
	static const char *const names[] = {"n2", "n9", "n3", "n4", "n1", "n1"};
	static const char *const leaves[] = {"1", "1", "2", "2", NULL, NULL};
	static const int places[] = {4, 2, 0, 3, 1, 5}, duplicate_first[] = {5, 2, 0, 3, 1, 4};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wlb_topology_file file;
		struct wlb_error error;
		int order[6];
		const char *leaf[6];
		assert_int_equal(list(i == 0 ? tree : blocks, &file, &error), 0);
		assert_int_equal(file.node_count, 4);
		assert_int_equal(wlb_topology_order_names(&file, names, 6, order, leaf, &error), 0);
		assert_true(memcmp(order, places, sizeof(places)) == 0 ||
		            memcmp(order, duplicate_first, sizeof(places)) == 0);
		for (int k = 0; k < 6; k++)
			if (leaves[k] == NULL)
				assert_null(leaf[k]);
			else
				assert_string_equal(leaf[k] + 1, leaves[k]);
		wlb_topology_file_free(&file);
		assert_int_equal(wlb_topology_order_names(&file, names, 6, order, leaf, &error), 0);
		assert_int_equal(order[0], 0);
		assert_null(leaf[0]);
	}
	struct wlb_topology_file file;
	struct wlb_error error;
	assert_int_equal(list("SwitchName=s1 Level=0 Nodes=n1 Rank=3\n", &file, &error), -1);
	wlb_topology_file_free(&file);
	assert_int_equal(parse("SwitchName=s1 Level=0 Nodes=n1\n", &file, &error), -1);
	wlb_topology_file_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_a_tree), cmocka_unit_test(names_what_is_wrong),
	                                   cmocka_unit_test(reads_what_slurmctld_lists)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
