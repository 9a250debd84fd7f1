#include "checks/node/virtual_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_word(char *line, const char *word)
{
	char *rest;
	for (char *each = strtok_r(line, " \t\n", &rest); each != NULL; each = strtok_r(NULL, " \t\n", &rest))
		if (strcmp(each, word) == 0)
			return true;
	return false;
}

bool wlb_is_virtual_machine(const char *cpuinfo)
{
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *file = fopen(cpuinfo, "re");
	if (file == NULL)
		return false;
	while (getline(&line, &size, file) > 0)
		if (strncmp(line, "flags", 5) == 0) {
			found = has_word(line, "hypervisor");
			break;
		}
	free(line);
	fclose(file);
	return found;
}
