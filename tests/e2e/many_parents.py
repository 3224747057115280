"""Many parents that are changed together."""

import asyncio
from dataclasses import dataclass

from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story

PARENTS = 20


@dataclass(frozen=True, slots=True)
class ManyParents:
    """Twenty parents with three children each."""

    story: Story

    async def create(self) -> None:
        """Create the parents, and wait until they have settled."""
        async with asyncio.TaskGroup() as tasks:
            for index in range(PARENTS):
                tasks.create_task(self.story.parent(f"p{index}", text="at first"))
        await eventually(lambda: self.all_show("at first"), within_seconds=30)

    async def change(self, text: str) -> None:
        """Set the text that every parent wants for its children."""
        async with asyncio.TaskGroup() as tasks:
            for index in range(PARENTS):
                tasks.create_task(self.story.change(f"p{index}", text=text))

    async def all_show(self, text: str) -> None:
        """Raise AssertionError unless every child has the text, and every parent has settled."""
        texts = await self.story.texts()
        expect(set(texts.values()) == {text} and len(texts) == 3 * PARENTS, f"the children's texts are {set(texts.values())}")
        await self.story.all_settled()

    async def any_shows(self, text: str) -> None:
        """Raise AssertionError unless a child has the text."""
        expect(text in (await self.story.texts()).values(), f"no child has {text!r} yet")
