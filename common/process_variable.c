#include "common/process_variable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENVIRON_MAX_BYTES = 4 * 1024 * 1024, /* the kernel allows a process 6 MiB of arguments and environment */
};

char *wlb_process_environment(pid_t pid, size_t *length)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;
	*length = 0;
	while (file != NULL && *length < ENVIRON_MAX_BYTES) {
		if (*length + 1 >= size) {
			size = size * 2 + 8192;
			char *larger = realloc(text, size);
			if (larger == NULL)
				break;
			text = larger;
		}
		size_t n = fread(text + *length, 1, size - 1 - *length, file);
		if (n == 0)
			break;
		*length += n;
	}
	if (file != NULL)
		fclose(file);
	if (text != NULL)
		text[*length] = '\0';
	return text;
}

int wlb_process_variable(pid_t pid, const char *name, char *value, size_t size)
{
	size_t length, name_length = strlen(name);
	char *environment = wlb_process_environment(pid, &length);
	int rc = -1;
	for (const char *variable = environment; rc != 0 && variable != NULL && variable < environment + length;
	     variable += strlen(variable) + 1)
		if (strncmp(variable, name, name_length) == 0 && variable[name_length] == '=' &&
		    strlen(variable + name_length + 1) < size) {
			snprintf(value, size, "%s", variable + name_length + 1);
			rc = 0;
		}
	free(environment);
	return rc;
}
