"""Many parents that are changed together, and seen to follow."""

import asyncio
from dataclasses import dataclass

from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story

PARENTS = 20


@dataclass(frozen=True, slots=True)
class Crowd:
    """Twenty parents with three children each."""

    story: Story

    async def appear(self) -> None:
        """All are there, and have settled."""
        async with asyncio.TaskGroup() as tasks:
            for index in range(PARENTS):
                tasks.create_task(self.story.parent(f"p{index}", text="at first"))
        await eventually(lambda: self.all_show("at first"), within_seconds=30)

    async def change(self, text: str) -> None:
        """Every parent wants another text."""
        async with asyncio.TaskGroup() as tasks:
            for index in range(PARENTS):
                tasks.create_task(self.story.change(f"p{index}", text=text))

    async def all_show(self, text: str) -> None:
        """Raises unless every child has the text, and every parent says so."""
        texts = await self.story.texts()
        expect(set(texts.values()) == {text} and len(texts) == 3 * PARENTS, f"the children's texts are {set(texts.values())}")
        await self.story.all_settled()

    async def any_shows(self, text: str) -> None:
        """Raises unless one child has the text."""
        expect(text in (await self.story.texts()).values(), f"no child has {text!r} yet")
