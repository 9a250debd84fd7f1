#include "spank/json.h"

#include <stdint.h>
#include <string.h>

#include "libwlb/wlb.h"

void wlb_json_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
		uint32_t code;
		bytes = wlb_text_first(text, left, &code);
		if (code == WLB_TEXT_INVALID)
			fputs("\\ufffd", out);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (code < 0x20 || code == 0x7f)
			fprintf(out, "\\u%04x", (unsigned)code);
		else
			fwrite(text, 1, bytes, out);
	}
	fputc('"', out);
}
