#include "coordinator/stacks/demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef char *demangler(const char *name, char *buffer, size_t *size, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool is_tried;
	if (!is_tried) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
		found = library != NULL ? (demangler *)dlsym(library, "__cxa_demangle") : NULL;
		is_tried = true;
	}
	return found;
}

/* Where the text has one of these, it is copied whole: what looks like a bracket or a blank in it is none. */
static size_t whole_word(const char *text)
{
	static const char *const words[] = {"(anonymous namespace)",
	                                    "operator()",
	                                    "operator<<=",
	                                    "operator>>=",
	                                    "operator<<",
	                                    "operator>>",
	                                    "operator<=>",
	                                    "operator->*",
	                                    "operator->",
	                                    "operator<=",
	                                    "operator>=",
	                                    "operator<",
	                                    "operator>",
	                                    "operator ",
	                                    "->"};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return strlen(words[i]);
	return 0;
}

/* Copies what is outside <...> and (...), and not what is before a blank there, which is the type that is returned. */
static void shorten(const char *full, char *text, size_t size)
{
	size_t length = 0;
	int depth = 0;
	for (const char *c = full; *c != '\0' && length + 1 < size; c++) {
		size_t whole = depth == 0 ? whole_word(c) : 0;
		if (whole > 0) {
			length += (size_t)snprintf(text + length, size - length, "%.*s", (int)whole, c);
			length = length < size ? length : size - 1;
			c += whole - 1;
		} else if (*c == '<' || *c == '(') {
			depth++;
		} else if ((*c == '>' && (c == full || c[-1] != '-')) || *c == ')') {
			depth -= depth > 0;
		} else if (depth == 0 && *c == ' ' && strncmp(c, " const", 6) != 0 && c[1] != '[') {
			length = 0;
		} else if (depth == 0) {
			text[length++] = *c;
		}
	}
	text[length] = '\0';
	char *qualifier = strstr(text, " const");
	if (qualifier != NULL)
		*qualifier = '\0';
}

void wlb_demangle(const char *name, char *text, size_t size)
{
	int status = -1;
	demangler *demangle = strncmp(name, "_Z", 2) == 0 ? find_demangler() : NULL;
	char *full = demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
	if (full != NULL && status == 0)
		shorten(full, text, size);
	else
		snprintf(text, size, "%s", name);
	free(full);
}
