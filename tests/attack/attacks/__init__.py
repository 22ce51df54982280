"""The attacks: a module for each. A new one is registered here."""

from tests.attack.attack import Attack
from tests.attack.attacks.address_space import ADDRESS_SPACE
from tests.attack.attacks.allowed_images import ALLOWED_IMAGES
from tests.attack.attacks.batch_sizes import BATCH_SIZES
from tests.attack.attacks.bodies import LARGE_BODIES, REFUSED_BODIES
from tests.attack.attacks.captures import CAPTURES, LARGE_RESPONSES
from tests.attack.attacks.chunks import CHUNKS
from tests.attack.attacks.computed_pages import COMPUTED_PAGES
from tests.attack.attacks.descriptors import DESCRIPTORS
from tests.attack.attacks.documents import COMPRESSED_DOCUMENTS, NAMED_OUTPUTS
from tests.attack.attacks.floods import FLOODS
from tests.attack.attacks.framing import FRAMING
from tests.attack.attacks.images import IMAGES
from tests.attack.attacks.inspections import INSPECTIONS
from tests.attack.attacks.lengths import LENGTHS
from tests.attack.attacks.other_origins import OTHER_ORIGINS
from tests.attack.attacks.pipelines import PIPELINES
from tests.attack.attacks.promised_bodies import PROMISED_BODIES
from tests.attack.attacks.slow_readers import SLOW_READERS
from tests.attack.attacks.statistics import STATISTICS
from tests.attack.attacks.tables import TABLES
from tests.attack.attacks.unread_responses import UNREAD_RESPONSES

ATTACKS: tuple[Attack, ...] = (
    UNREAD_RESPONSES,
    SLOW_READERS,
    PIPELINES,
    FRAMING,
    CHUNKS,
    PROMISED_BODIES,
    DESCRIPTORS,
    BATCH_SIZES,
    LENGTHS,
    REFUSED_BODIES,
    LARGE_BODIES,
    COMPRESSED_DOCUMENTS,
    NAMED_OUTPUTS,
    TABLES,
    IMAGES,
    ALLOWED_IMAGES,
    CAPTURES,
    LARGE_RESPONSES,
    STATISTICS,
    ADDRESS_SPACE,
    OTHER_ORIGINS,
    FLOODS,
    COMPUTED_PAGES,
    INSPECTIONS,
)
"""All attacks, in the order of the table."""
