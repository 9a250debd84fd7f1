/* Any node list of a client: refused with a reason, or as many names as were counted before Slurm expanded it. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/slurm/hostlist_size.h"
#include "coordinator/slurm/slurm_api.h"
#include "tests/fuzz/scratch.h"

enum { MOST = 4096 };

static void check_names(char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		must(names[i][0] != '\0' && strlen(names[i]) <= WLB_HOSTLIST_NAME_BYTES_MOST);
		must(strpbrk(names[i], "[], \t\n\"'\\") == NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wlb_error error = {0};
	char **names, *text = malloc(bytes + 1);
	int count;
	must(text != NULL);
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	int size = wlb_hostlist_size(text, MOST, &error);
	must(size <= MOST && (size > 0 || error.message[0] != '\0'));
	if (size > 0) {
		must(wlb_hostlist_expand_most(text, MOST, &names, &count, &error) == 0 && count == size);
		check_names(names, count);
		wlb_strings_free(names, count);
	}
	free(text);
	return 0;
}
