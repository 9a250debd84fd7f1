"""A section of a page of results that is measured apart: it stays where the rest is measured anew, and the rest where it is."""
import re
import sys


class Section:
    def __init__(self, page, title):
        self.page, self.title = page, title
        self.pattern = re.compile(rf"^{re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)

    def kept(self):
        """Its text in the page as it was written."""
        found = self.pattern.search(self.page.read_text(encoding="utf-8"))
        if not found:
            sys.exit(f"{self.page}: it has no section '{self.title}'")
        return found[0]

    def replaced(self, text):
        """The page with this text for the section."""
        return self.page.read_text(encoding="utf-8").replace(self.kept(), text)
